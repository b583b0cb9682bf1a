"""Names for numpy's array types."""

import numpy as np
from numpy.typing import NDArray

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
