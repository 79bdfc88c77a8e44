import onnxruntime as onnxruntime
