"""Backend `xrt`: generated designs on an NPU of this machine, through pyxrt."""
