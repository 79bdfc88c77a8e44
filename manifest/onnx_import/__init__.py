import onnx as onnx
