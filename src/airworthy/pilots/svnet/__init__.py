"""SV-Net in flight: what it reads and gives, and its inference without torch."""
