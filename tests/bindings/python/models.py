"""Models for the tests and benchmarks of ckpt.torch."""
import math

import torch
from torch import nn
from torch.nn import functional


class GptBlock(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.ln1, self.qkv, self.proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln2, self.fc1, self.fc2 = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        b, t, c = x.shape
        q, k, v = (part.transpose(1, 2) for part in self.qkv(x).view(b, t, 3, self.heads, c // self.heads).unbind(2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(c // self.heads))
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        y = functional.dropout(functional.softmax(scores.masked_fill(future, float("-inf")), dim=-1), self.dropout, self.training) @ v
        return self.proj(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + functional.dropout(self.attention(self.ln1(x)), self.dropout, self.training)
        return x + functional.dropout(self.fc2(functional.gelu(self.fc1(self.ln2(x)))), self.dropout, self.training)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride != 1 or inputs != outputs else None

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + (x if self.skip is None else self.skip(x)))


def gpt(layers=12, width=64, heads=4, dropout=0.0):
    return nn.Sequential(*[GptBlock(width, heads, dropout) for _ in range(layers)])


def cnn(blocks=50, width=8):
    """Four stages, each half the size and twice the width of the one before."""
    out, inputs = [], width
    for k in range(blocks):
        stage = min(3, 4 * k // blocks)
        outputs = width << stage
        out.append(ResidualBlock(inputs, outputs, 2 if outputs != inputs else 1))
        inputs = outputs
    return nn.Sequential(*out)
