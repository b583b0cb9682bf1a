"""CSV, line by line, that a spreadsheet does not run."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """The header and the rows. A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row])
        if buffer.tell() > 64 * 1024:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> bytes:
    content = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return content
