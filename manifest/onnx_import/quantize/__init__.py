"""Quantizer for float models (the only importer part that sees onnxruntime)."""
