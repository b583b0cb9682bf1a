"""Lists of resources with quantities, kept as they are written."""

from scheduling.manifest import Fields, MistakeReason
from scheduling.manifest.syntax import qualified_name


def read_quantities(holder: Fields, key: str) -> dict[str, str]:
    """Resource name -> quantity as text; every mistake is noted and left out."""
    listed = holder.fields(key)
    if listed is None:
        return {}
    found: dict[str, str] = {}
    for name in listed.content:
        broken = qualified_name(name)
        if broken:
            listed.error(name, f"as a resource name {broken}")
        elif listed.quantity(name) is not None:
            found[name] = str(listed.content[name])
        elif not listed.has(name):
            listed.error(name, "must be a quantity, like 500m, 2 or 10Gi", "Add one.", MistakeReason.REQUIRED)
    return found
