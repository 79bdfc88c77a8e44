"""pyxrt, as far as it is used: a device, a context for one design, runs of it.

Names and order are those of Xilinx/XRT, src/python/pybind11 (pyxrt.pyi, pyxrt.cpp) and of mlir-aie,
python/utils/hostruntime/xrtruntime: `kernel(3, instructions, their bytes, buffers...)`, instructions cacheable in
group 1, data of the host from group 3 on.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.backends.devices import architecture_of, device_of
from bringup.backends.generated import HostTensor
from bringup.backends.xrt.artifacts import Artifacts
from bringup.model import DeviceIdentity, Unavailable

Array = NDArray[Any]

OPCODE: Final = 3
INSTRUCTIONS_ARGUMENT: Final = 1
FIRST_DATA_ARGUMENT: Final = 3
COMPLETED: Final = "ERT_CMD_STATE_COMPLETED"
TIMEOUT: Final = "ERT_CMD_STATE_TIMEOUT"
LOST: Final = frozenset({TIMEOUT, "ERT_CMD_STATE_ABORT", "ERT_CMD_STATE_NORESPONSE"})
"""States after which a context gives nothing any more."""


class DriverError(Exception):
    """The driver or the device refuses; its text is one line.

    Attributes:
        status: state word for word, or "" where it raised.
    """

    def __init__(self, text: str, status: str = "") -> None:
        self.status = status
        super().__init__(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A device that was opened."""

    pyxrt: Any
    device: Any
    identity: DeviceIdentity
    architecture: str


def open_device(module: str = "pyxrt") -> Opened | Unavailable:
    """Open the first NPU.

    Args:
        module: that stands for pyxrt.
    """
    try:
        pyxrt = importlib.import_module(module)
    except (ImportError, OSError) as error:
        return Unavailable(what=f"pyxrt cannot be imported ({error})", looked_for="python module pyxrt of XRT")
    try:
        device = pyxrt.device(0)
        reported = str(device.get_info(pyxrt.xrt_info_device.name))
    except (RuntimeError, OSError, AttributeError) as error:
        return Unavailable(what=f"no device could be opened ({_line(error)})", looked_for="pyxrt.device(0)")
    architecture = _architecture(pyxrt, device)
    name = device_of(reported, architecture)
    said = f"{reported} ({architecture})" if architecture else reported
    identity = DeviceIdentity(name=name, reported=said, runs="hardware")
    return Opened(pyxrt=pyxrt, device=device, identity=identity, architecture=architecture)


def _architecture(pyxrt: Any, device: Any) -> str:
    try:
        return architecture_of(str(device.get_info(pyxrt.xrt_info_device.platform)))
    except (RuntimeError, OSError, AttributeError):  # an older driver has no such report
        return ""


class Session:
    """One design on the device.

    Raises:
        DriverError: it cannot be loaded, or takes fewer buffers than the design has.
    """

    def __init__(self, opened: Opened, artifacts: Artifacts, tensors: Sequence[HostTensor]) -> None:
        self.pyxrt = opened.pyxrt
        self.device = opened.device
        self.tensors = tensors
        self.insts = np.frombuffer(artifacts.insts, np.uint32)
        try:
            xclbin = self.pyxrt.xclbin(str(artifacts.xclbin))
            self.device.register_xclbin(xclbin)
            self.context = self.pyxrt.hw_context(self.device, xclbin.get_uuid())
            kernels = list(xclbin.get_kernels())
            if len(kernels) != 1:
                msg = f"the xclbin has {len(kernels)} kernels, expected 1"
                raise DriverError(msg)
            # Passing more buffers than the kernel declares ends the process inside XRT.
            room = kernels[0].get_num_args() - FIRST_DATA_ARGUMENT
            if room < len(tensors):
                msg = f"the xclbin takes {room} buffers, the design has {len(tensors)}"
                raise DriverError(msg)
            self.kernel = self.pyxrt.kernel(self.context, kernels[0].get_name())
            self.insts_bo = self._buffer(self.insts.nbytes, self.pyxrt.bo.cacheable, INSTRUCTIONS_ARGUMENT)
            self._fill(self.insts_bo, self.insts)
        except (RuntimeError, OSError) as error:
            msg = f"the design cannot be loaded: {_line(error)}"
            raise DriverError(msg) from error

    def _buffer(self, size: int, flags: Any, argument: int) -> Any:
        return self.pyxrt.bo(self.device, size, flags, self.kernel.group_id(argument))

    def _fill(self, buffer: Any, data: Array) -> None:
        buffer.write(np.ascontiguousarray(data).view(np.uint8), 0)
        buffer.sync(self.pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE)

    def run(self, inputs: Mapping[str, Array], poison: int, timeout_ms: int) -> dict[str, Array]:
        """Run once.

        Args:
            inputs: bytes of every tensor that is filled, by name.
            poison: byte that drained tensors hold before.
            timeout_ms: that the device has.

        Returns:
            Drained tensors, one-dimensional.

        Raises:
            DriverError: it did not complete; `status` is the driver's word.
        """
        try:
            buffers = [self._data(i, t, inputs, poison) for i, t in enumerate(self.tensors)]
            run = self.kernel(OPCODE, self.insts_bo, self.insts.nbytes, *buffers)
            state = run.wait(timeout_ms)
            if state != self.pyxrt.ert_cmd_state.ERT_CMD_STATE_COMPLETED:
                word = state_name(state)
                msg = f"the device ended in {word}, expected {COMPLETED}"
                raise DriverError(msg, word)
            return {t.name: self._drain(t, b) for t, b in zip(self.tensors, buffers, strict=True) if t.drained}
        except (RuntimeError, OSError) as error:
            msg = f"the driver refuses: {_line(error)}"
            raise DriverError(msg) from error

    def _data(self, index: int, tensor: HostTensor, inputs: Mapping[str, Array], poison: int) -> Any:
        size = tensor.elements * np.dtype(tensor.dtype).itemsize
        buffer = self._buffer(size, self.pyxrt.bo.host_only, FIRST_DATA_ARGUMENT + index)
        data = np.full(size, poison, np.uint8)
        if tensor.filled:
            given = np.ascontiguousarray(inputs[tensor.name].reshape(-1)).view(np.uint8)
            data[: given.size] = given
        self._fill(buffer, data)
        return buffer

    def _drain(self, tensor: HostTensor, buffer: Any) -> Array:
        size = tensor.elements * np.dtype(tensor.dtype).itemsize
        buffer.sync(self.pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE)
        data = np.array(buffer.read(size, 0)).view(np.uint8)
        if data.size != size:
            msg = f"tensor {tensor.name!r}: the driver gave {data.size} bytes of {size}"
            raise DriverError(msg)
        return np.frombuffer(data.tobytes(), tensor.dtype)


def state_name(state: Any) -> str:
    """A state of the driver in its own word, whatever number it has."""
    return str(getattr(state, "name", state)).rsplit(".", 1)[-1]


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
