"""The residual network of `selfmate bench nets` in PyTorch, timed the same way.

    python torch_nets.py [--blocks 5] [--filters 64] [--threads 2] [--seconds 3]

Prints one JSON document: positions per second for each batch size and each form of the network (plain,
traced and frozen, channels last, and compiled where a compiler is installed), and the speed of training.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional

BATCHES = [1, 8, 32, 128]
TRAINING_BATCH = 256


class Block(nn.Module):
    def __init__(self, filters):
        super().__init__()
        self.first = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(filters)
        self.second = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(filters)

    def forward(self, x):
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(x + self.second_norm(self.second(y)))


class Network(nn.Module):
    def __init__(self, blocks, filters):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(119, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()
        )
        self.blocks = nn.Sequential(*[Block(filters) for _ in range(blocks)])
        self.policy = nn.Sequential(
            nn.Conv2d(filters, 2, 1, bias=False),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(128, 4672),
        )
        self.value = nn.Sequential(
            nn.Conv2d(filters, 1, 1, bias=False),
            nn.BatchNorm2d(1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
            nn.Tanh(),
        )

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.policy(x), self.value(x)


def speed(positions, seconds, call):
    """Positions per second: the median over calls, after two warm-up calls."""
    call()
    call()
    times = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or not times:
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    times.sort()
    return positions / times[len(times) // 2]


def forms(network):
    """Yields the forms of the network that work on this machine, with their names."""
    yield "plain", network
    example = torch.zeros(1, 119, 8, 8)
    traced = torch.jit.optimize_for_inference(torch.jit.trace(network, example))
    yield "traced", traced
    last = network.to(memory_format=torch.channels_last)
    yield "channels last", lambda x: last(x.to(memory_format=torch.channels_last))
    try:
        compiled = torch.compile(network)
        compiled(example)
        yield "compiled", compiled
    except Exception as error:  # no compiler: the other forms are still measured
        print(f"torch.compile does not work on this machine: {error}", file=__import__("sys").stderr)


def inference(blocks, filters, seconds):
    rows = []
    with torch.inference_mode():
        for name, form in forms(Network(blocks, filters).eval()):
            for batch in BATCHES:
                planes = (torch.rand(batch, 119, 8, 8) < 0.1).float()
                rows.append(
                    {
                        "form": name,
                        "batch": batch,
                        "inference_per_second": speed(batch, seconds, lambda: form(planes)),
                    }
                )
    return rows


def training(blocks, filters, seconds):
    network = Network(blocks, filters).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    planes = (torch.rand(TRAINING_BATCH, 119, 8, 8) < 0.1).float()
    target = functional.softmax(torch.rand(TRAINING_BATCH, 4672), dim=1)
    result = torch.ones(TRAINING_BATCH, 1)

    def step():
        optimiser.zero_grad()
        policy, value = network(planes)
        loss = functional.cross_entropy(policy, target) + functional.mse_loss(value, result)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()

    return speed(TRAINING_BATCH, seconds, step)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--filters", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    shape = (arguments.blocks, arguments.filters)
    report = {
        "torch": torch.__version__,
        "parameters": sum(p.numel() for p in Network(*shape).parameters()),
        "inference": inference(*shape, arguments.seconds),
        "training_per_second": training(*shape, arguments.seconds),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
