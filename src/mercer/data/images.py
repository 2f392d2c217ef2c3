"""Data sets of images: arrays of pixels of one size, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import is_missing
from mercer.data.objects import objects_of
from mercer.data.vectors import as_numbers
from mercer.errors import InvalidInput, MissingValues

Array = NDArray[Any]


def as_images(X: Any) -> Array:
    """Images as an array (n, height, width, channels): from (n, h, w), (n, h, w, c), or a list of images of one size.

    A missing value is an error that names the image.

    >>> as_images(np.zeros((5, 8, 8))).shape
    (5, 8, 8, 1)
    """
    if isinstance(X, np.ndarray) and X.dtype != object:
        A = X
    else:
        images = objects_of(X, "Images")
        gone = next((i for i, x in enumerate(images) if is_missing(x)), None)
        if gone is not None:
            raise MissingValues("No image may be missing", got=f"a missing value as image {gone}",
                                advice="Leave out the rows whose image is missing.")  # fmt: skip
        shapes = [np.shape(x) for x in images]
        other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if other is not None:
            raise InvalidInput(
                "All images must have the same size",
                got=f"{shapes[0]} for image 0 and {shapes[other]} for image {other}",
                advice="Crop or resize them first.",
            )
        A = np.array([np.asarray(x) for x in images])
    if A.ndim not in (3, 4) or 0 in A.shape:
        raise InvalidInput(
            "Images must have the shape (n, height, width) or (n, height, width, channels)",
            got=f"shape {A.shape}",
            advice="Reshape rows of pixels, such as X.reshape(-1, 28, 28).",
        )
    A = np.ascontiguousarray(as_numbers(A))
    if not np.isfinite(A).all():
        i = int(np.argwhere(~np.isfinite(A))[0][0])
        missing = bool(np.isnan(A[i]).any())
        raise (MissingValues if missing else InvalidInput)(
            "Images must have finite pixels",
            got=f"{'a missing value' if missing else 'infinity'} in image {i}",
            advice="Fill the pixel in, for example with the mean of its neighbours.",
        )
    return A if A.ndim == 4 else A[..., None]
