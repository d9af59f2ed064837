"""Networks that nobody here wrote, and those that timm and transformers lack, on four targets."""
