"""Runs an exported network in onnxruntime and compares its outputs with ours.

    python onnx.py MODEL.onnx EXAMPLES.safetensors [--tolerance 1e-4]

Fails when any number differs by more than the tolerance.
"""

import argparse
import json
import struct
import sys

import numpy
import onnxruntime


def read_tensors(path):
    """The float tensors of a safetensors file, by name."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        start, end = tensor["data_offsets"]
        values = numpy.frombuffer(data[start:end], dtype="<f4")
        tensors[name] = values.reshape(tensor["shape"])
    return tensors


def differences(outputs, examples):
    """The largest difference of each output, by name."""
    worst = {"value": numpy.abs(outputs["value"] - examples["value"]).max()}
    if "policy" in examples:
        worst["policy"] = numpy.abs(outputs["policy"] - examples["policy"]).max()
    else:
        places = [examples[f"move.{name}"].astype(int) for name in ("position", "row", "table")]
        position, row, table = places
        logits = outputs["policy_rows"][position, row] + outputs["policy_table"][table]
        worst["policy"] = numpy.abs(logits - examples["move.logit"]).max()
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("examples")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    examples = read_tensors(arguments.examples)
    session = onnxruntime.InferenceSession(arguments.model, providers=["CPUExecutionProvider"])
    (name,) = [value.name for value in session.get_inputs()]
    results = session.run(None, {name: examples[name]})
    outputs = dict(zip([value.name for value in session.get_outputs()], results))
    count = len(examples[name])
    # A single position must give the same output as a batch.
    single = session.run(None, {name: examples[name][:1]})
    outputs_single = dict(zip(outputs, single))
    assert numpy.abs(outputs_single["value"][0] - outputs["value"][0]).max() < arguments.tolerance
    worst = differences(outputs, examples)
    for output, difference in worst.items():
        print(f"{output}: {count} positions, largest difference {difference:.2e}")
    if not all(difference <= arguments.tolerance for difference in worst.values()):
        sys.exit(f"differs by more than {arguments.tolerance}")


if __name__ == "__main__":
    main()
