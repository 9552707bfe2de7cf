"""Writes cublaslt.json: the numbers by which NVIDIA's headers call what is asked of cublasLt. Needs no GPU.

    python tests/golden/make_cublaslt.py [FOLDER]

with `pip install 'minikeras[cuda13]'`, or with a folder of other headers.
"""

import importlib.util
import json
import pathlib
import re
import sys

FILE = pathlib.Path(__file__).with_name("cublaslt.json")
HEADERS = "library_types.h", "cublas_api.h", "cublasLt.h"
ASKED_FOR = (
    r"CUDA_R_(16F|16BF|32F|64F)|CUBLAS_COMPUTE_(32F|64F)|CUBLASLT_REDUCTION_SCHEME_\w+|CUBLASLT_EPILOGUE_\w+|"
    r"CUBLASLT_MATMUL_DESC_(TRANSA|TRANSB|EPILOGUE|BIAS_POINTER|EPILOGUE_AUX_POINTER|EPILOGUE_AUX_LD)|"
    r"CUBLASLT_MATMUL_PREF_(MAX_WORKSPACE_BYTES|REDUCTION_SCHEME_MASK)"
)


def folders() -> list[pathlib.Path]:
    """Where headers are: those of the command line, or of NVIDIA's wheels."""
    wheels = importlib.util.find_spec("nvidia")
    inside = [pathlib.Path(one) for one in (wheels.submodule_search_locations or [] if wheels else [])]
    return [pathlib.Path(one) for one in sys.argv[1:]] or [one for folder in inside for one in folder.glob("*/include")]


def numbers() -> dict[str, int]:
    """By the names of enumerators; some are made of earlier ones: `RELU_AUX = (RELU | 128)`."""
    found: dict[str, int] = {}
    for header in HEADERS:
        text = next(path for folder in folders() if (path := folder / header).exists()).read_text()
        for name, value in re.findall(r"^ *(CU\w+) *= *([\w |()]+?) *,", text, re.MULTILINE):
            if re.fullmatch(ASKED_FOR, name):
                found[name] = eval(value, {"__builtins__": {}}, found)
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(numbers(), indent=1) + "\n")
