"""What the wheels say and hold."""

from __future__ import annotations

import email
import re
import zipfile

from support.wheels import Wheels


def test_every_wheel_is_typed_licensed_and_pins_its_siblings(wheels: Wheels) -> None:
    ours = wheels.names()
    assert len(ours) == 13
    versions: set[str] = set()
    for path in wheels.folder.glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
            fields = email.message_from_bytes(wheel.read(metadata))
        root = fields["Name"].replace("-", "_")
        assert f"{root}/py.typed" in names
        assert {name.partition("/")[0] for name in names} == {root, metadata.partition("/")[0]}
        assert (fields["License-Expression"], fields["Requires-Python"]) == ("Apache-2.0", ">=3.12")
        versions.add(fields["Version"])
        for requirement in fields.get_all("Requires-Dist", []):
            name = re.split(r"[^\w-]", requirement)[0]
            # The extra "all" of a distribution names the distribution's other extras, at its own version.
            assert name not in ours - {fields["Name"]} or f"=={fields['Version']}" in requirement, requirement
    assert len(versions) == 1
