"""A functional model of the Arm Ethos-U55, U65 and U85: results, not time.

It runs what Vela compiled: ``model.Network(blob).run(inputs)`` gives the bytes that the NPU
would leave in its outputs. The rules come from three places, and every module names its own: the
register names and encodings and the command generation of the ``ethos-u-vela`` 5.1.0 package
and its source distribution (regor), the blob that ExecuTorch's ``backends/arm/arm_vela.py``
writes, and the arithmetic of the TOSA reference model, which the tests compare against bit by
bit. Whatever none of the three confirms raises ``Unsupported``.
"""
