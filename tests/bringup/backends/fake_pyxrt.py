"""A double of pyxrt with the documented behaviour (Xilinx/XRT, src/python/pybind11/pyxrt.pyi; xrt_kernel.h).

`BOARD` says what the device is and does; the module is what a driver would be, so it has no arguments of its own.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class ert_cmd_state(enum.IntEnum):  # noqa: N801  (pyxrt's name)
    ERT_CMD_STATE_NEW = 1
    ERT_CMD_STATE_COMPLETED = 4
    ERT_CMD_STATE_ERROR = 5
    ERT_CMD_STATE_ABORT = 6
    ERT_CMD_STATE_TIMEOUT = 8
    ERT_CMD_STATE_NORESPONSE = 9


class xrt_info_device:  # noqa: N801
    name = 5
    platform = 12


class xclBOSyncDirection(enum.IntEnum):  # noqa: N801
    XCL_BO_SYNC_BO_TO_DEVICE = 0
    XCL_BO_SYNC_BO_FROM_DEVICE = 1


def copy(data: list[np.ndarray]) -> None:
    """What the design under test does: the first buffer into the second."""
    data[1][:] = data[0]


@dataclass
class Board:
    """The device, and a log of what was asked of it."""

    name: str = "RyzenAI-npu4"
    platform: str = "{}"
    present: bool = True
    states: list[ert_cmd_state] = field(default_factory=list)
    compute: Callable[[list[np.ndarray]], None] = copy
    arguments: int = 8
    kernels: int = 1
    load_error: str = ""
    log: list[Any] = field(default_factory=list)


BOARD = Board()


class uuid:  # noqa: N801
    pass


class device:  # noqa: N801
    def __init__(self, index: int) -> None:
        if not BOARD.present:
            msg = f"No such device with index '{index}'"
            raise RuntimeError(msg)
        BOARD.log.append(("device", index))

    def get_info(self, key: int) -> str:
        if key == xrt_info_device.platform and not BOARD.platform:
            msg = "query not supported"
            raise RuntimeError(msg)
        return BOARD.name if key == xrt_info_device.name else BOARD.platform

    def register_xclbin(self, image: "xclbin") -> uuid:
        BOARD.log.append(("register", image.path))
        return uuid()


class xclbin:  # noqa: N801
    class xclbinkernel:  # noqa: N801
        def get_name(self) -> str:
            return "MLIR_AIE"

        def get_num_args(self) -> int:
            return BOARD.arguments

    def __init__(self, path: str) -> None:
        if BOARD.load_error:
            raise RuntimeError(BOARD.load_error)
        self.path = path

    def get_kernels(self) -> list["xclbin.xclbinkernel"]:
        return [self.xclbinkernel() for _ in range(BOARD.kernels)]

    def get_uuid(self) -> uuid:
        return uuid()


class hw_context:  # noqa: N801
    def __init__(self, of: device, image: uuid) -> None:
        assert isinstance(of, device)
        assert isinstance(image, uuid)
        BOARD.log.append(("context",))


class bo:  # noqa: N801
    cacheable = "cacheable"
    host_only = "host_only"

    def __init__(self, of: device, size: int, flags: str, group: int) -> None:
        assert isinstance(of, device)
        BOARD.log.append(("bo", size, flags, group))
        self.host = np.zeros(size, np.uint8)
        self.memory = np.zeros(size, np.uint8)

    def write(self, data: Any, seek: int) -> None:
        given = np.frombuffer(memoryview(data).cast("B"), np.uint8)
        self.host[seek : seek + given.size] = given

    def read(self, size: int, skip: int) -> np.ndarray:
        return self.host[skip : skip + size].view(np.int8).copy()

    def sync(self, direction: xclBOSyncDirection) -> None:
        if direction is xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE:
            self.memory[:] = self.host
        else:
            self.host[:] = self.memory


class run:  # noqa: N801
    def __init__(self, state: ert_cmd_state) -> None:
        self._state = state

    def wait(self, timeout_ms: int = 0) -> ert_cmd_state:
        BOARD.log.append(("wait", timeout_ms))
        return self._state


class kernel:  # noqa: N801
    def __init__(self, context: hw_context, name: str) -> None:
        assert isinstance(context, hw_context)
        assert name == "MLIR_AIE"

    def group_id(self, index: int) -> int:
        return 100 + index

    def __call__(self, *args: Any) -> run:
        opcode, insts, count, *data = args
        BOARD.log.append(("call", opcode, insts.memory.tobytes(), count, len(data)))
        state = BOARD.states.pop(0) if BOARD.states else ert_cmd_state.ERT_CMD_STATE_COMPLETED
        if state is ert_cmd_state.ERT_CMD_STATE_COMPLETED:
            BOARD.compute([b.memory.view(np.int32) for b in data])
        return run(state)
