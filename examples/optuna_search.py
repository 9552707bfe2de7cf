"""A search by Optuna that keeps its study in a file: kill it, run it again, and it resumes."""

import optuna

import minikeras as tf

TRIALS = 12
layers = tf.keras.layers
(x, y), (x_test, y_test) = tf.keras.datasets.digits.load_data()
x, x_test = x.reshape(len(x), -1).astype("float32") / 16, x_test.reshape(len(x_test), -1).astype("float32") / 16


def build(trial):
    """The model of a trial."""
    tf.keras.utils.set_random_seed(1)
    units = trial.suggest_int("units", 8, 64, log=True)
    dropout = layers.Dropout(trial.suggest_float("dropout", 0.0, 0.6))
    model = tf.keras.Sequential([tf.keras.Input((64,)), layers.Dense(units, "relu"), dropout, layers.Dense(10)])
    optimizer = tf.keras.optimizers.Adam(trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])
    return model


def objective(trial):
    """The accuracy on rows that were kept for validation."""
    pruning = tf.keras.callbacks.OptunaPruning(trial, "val_accuracy")
    model = build(trial)
    history = model.fit(x, y, epochs=10, validation_split=0.2, callbacks=[pruning], verbose=0)
    return history.history["val_accuracy"][-1]


optuna.logging.set_verbosity(optuna.logging.WARNING)
pruner = optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=2)
journal = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("optuna_search.log"))
study = optuna.create_study(storage=journal, study_name="digits", direction="maximize", pruner=pruner, load_if_exists=True)
ended = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
done = len(study.get_trials(states=ended))
for number in range(done, TRIALS):
    study.sampler = optuna.samplers.TPESampler(seed=number)  # what it draws depends on the trials in the file alone
    study.optimize(objective, n_trials=1)

states = [trial.state.name for trial in study.trials]
print(f"{done} trials were in the file, {TRIALS - done} are new; {states.count('PRUNED')} were pruned")
best = build(study.best_trial)
best.fit(x, y, epochs=10, verbose=0)
print(f"the best: {study.best_params}")
print(f"test accuracy: {best.evaluate(x_test, y_test, verbose=0)[1]:.3f}, validation accuracy: {study.best_value:.3f}")
