"""`tf.nn`: activations, losses and normalization. Names only; definitions are in `functions/`."""

from .distribute import functions
from .functions import convolution, elementwise, nn, ordering, reductions, sampling, shaping
from .functions.catalogue import publish as _publish

_publish(
    globals(),
    {
        convolution: """conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose conv_transpose convolution
            depthwise_conv2d separable_conv2d avg_pool avg_pool1d avg_pool2d avg_pool3d max_pool max_pool1d max_pool2d
            max_pool3d""",
        elementwise: "log_sigmoid sigmoid softplus tanh",
        nn: """batch_normalization bias_add crelu dropout elu embedding_lookup gelu l2_loss leaky_relu
            local_response_normalization log_poisson_loss log_softmax moments relu relu6 selu
            sigmoid_cross_entropy_with_logits silu softmax softmax_cross_entropy_with_logits softsign
            sparse_softmax_cross_entropy_with_logits swish weighted_cross_entropy_with_logits weighted_moments
            lrn:local_response_normalization""",
        ordering: "in_top_k top_k",
        reductions: "l2_normalize zero_fraction",
        sampling: "nce_loss sampled_softmax_loss",
        shaping: "depth_to_space space_to_depth",
    },
    {functions: "compute_average_loss scale_regularization_loss"},
)
