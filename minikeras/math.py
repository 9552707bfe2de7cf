"""`tf.math`: elementwise functions and reductions. Names only; definitions are in `functions/`."""

from .functions import elementwise, indexing, nn, ordering, reductions
from .functions.catalogue import publish as _publish

_publish(
    globals(),
    {
        elementwise: """abs acos acosh add add_n angle asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e
            ceil conj cos cosh digamma divide divide_no_nan equal erf erfc erfcinv erfinv exp expm1 floor floordiv floormod
            greater greater_equal imag is_finite is_inf is_nan less less_equal lgamma log log1p log_sigmoid logical_and
            logical_not logical_or logical_xor maximum minimum mod multiply multiply_no_nan ndtri negative nextafter
            not_equal polygamma polyval pow real reciprocal reciprocal_no_nan rint round rsqrt scalar_mul sigmoid sign sin
            sinh softplus sqrt square squared_difference subtract tan tanh truediv xdivy xlog1py xlogy zeta
            accumulate_n:add_n""",
        indexing: """segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max
            unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum""",
        nn: "log_softmax softmax softsign",
        ordering: "bincount confusion_matrix in_top_k invert_permutation top_k",
        reductions: """argmax argmin count_nonzero cumprod cumsum cumulative_logsumexp is_non_decreasing
            is_strictly_increasing l2_normalize lbeta reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp
            reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance zero_fraction""",
    },
)
