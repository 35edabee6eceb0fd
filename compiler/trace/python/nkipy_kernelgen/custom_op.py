from nkigen.custom_op import CustomOp

__all__ = ["CustomOp"]
