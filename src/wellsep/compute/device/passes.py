"""The passes that the device makes in its own way; all others are those of the host."""

from __future__ import annotations

from wellsep.compute.device.clusters import spectrum_on_device
from wellsep.compute.device.density import density_on_device
from wellsep.compute.device.representatives import represented_on_device
from wellsep.compute.wants import Provider

PROVIDERS: dict[str, Provider] = {
    "spectrum": spectrum_on_device,
    **dict.fromkeys(("spread", "balls"), density_on_device),
    "represented": represented_on_device,
}
