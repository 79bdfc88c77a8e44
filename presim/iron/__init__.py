"""Design files of mlir-aie 1.4's IRON: a stand-in package `aie`, and its lowering to a `Design`."""
