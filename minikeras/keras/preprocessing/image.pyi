# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.utils.files import array_to_img as array_to_img, img_to_array as img_to_array, load_img as load_img
from minikeras.keras.utils.files import save_img as save_img, smart_resize as smart_resize
