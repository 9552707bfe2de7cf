"""One row for every operation: inputs, domain, reference. `laws.py` holds what must be true of each.

Read `table.py` first. A primitive or a public operation without a row here is refused by
`tests/ops/test_every_operation.py`.
"""

from specimens import draws, elementwise, fourier, loops, networks, plain, products, reductions, segments, shaping, sliding
from specimens.table import Specimen

SPECIMENS: list[Specimen] = [
    specimen
    for table in (elementwise, fourier, reductions, segments, shaping, products, networks, plain, sliding, loops, draws)
    for specimen in table.SPECIMENS
]
SMOOTH = [specimen for specimen in SPECIMENS if specimen.smooth]

__all__ = ["SMOOTH", "SPECIMENS", "Specimen"]
