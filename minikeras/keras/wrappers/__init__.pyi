# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.wrappers.estimators import SKLearnClassifier as SKLearnClassifier, SKLearnRegressor as SKLearnRegressor
from minikeras.keras.wrappers.estimators import SKLearnTransformer as SKLearnTransformer
