"""The operations that users call, for type checkers: the names of the files that are its own too."""

from .contractions import *
from .control_flow import *
from .creation import *
from .elementwise import *
from .indexing import *
from .operands import *
from .ordering import *
from .reductions import *
from .shaping import *
