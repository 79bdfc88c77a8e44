"""The deployment manifest: model, file, devices, importer."""
