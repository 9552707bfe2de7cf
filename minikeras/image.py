"""`tf.image`: images turned, cut, padded, resized, recolored, and boxes in them. Names only; see `functions/`."""

from .functions import image, resizing
from .functions.catalogue import publish as _publish

_publish(
    globals(),
    {
        image: """transpose:_transposed adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation
            central_crop convert_image_dtype crop_and_resize crop_to_bounding_box
            extract_patches flip_left_right flip_up_down grayscale_to_rgb non_max_suppression
            pad_to_bounding_box per_image_standardization psnr random_brightness random_contrast random_crop
            random_flip_left_right random_flip_up_down random_hue random_saturation resize_with_crop_or_pad resize_with_pad
            rgb_to_grayscale rot90 stateless_random_brightness stateless_random_contrast stateless_random_crop
            stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue stateless_random_saturation
            total_variation""",
        resizing: "ResizeMethod resize",
    },
)
