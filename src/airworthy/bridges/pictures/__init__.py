"""Pictures rendered beside a flight that does not wait for them: a process with a scene and sensors of its own."""
