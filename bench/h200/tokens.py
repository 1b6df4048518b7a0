#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tokens.py: a small language model that decodes 64 tokens a request for a batch of 8, kernel by kernel, as server.py serves."""

import torch

import server

LAYERS, WIDTH, HEADS, BATCH, WORDS, PROMPT, TOKENS = 4, 1024, 16, 8, 8192, 128, 64


class Decoder:
    def __init__(self):
        torch.manual_seed(1)

        def weights(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02

        self.words = weights(WORDS, WIDTH)
        self.layers = [(weights(WIDTH, 3 * WIDTH), weights(WIDTH, WIDTH), weights(WIDTH, 4 * WIDTH), weights(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
        size = (BATCH, HEADS, PROMPT + TOKENS, WIDTH // HEADS)
        self.past = [(weights(*size), weights(*size)) for _ in range(LAYERS)]

    def token(self, word, place):
        x = self.words[word]
        for (qkv, out, up, down), (keys, values) in zip(self.layers, self.past):
            q, k, v = (torch.nn.functional.layer_norm(x, (WIDTH,)) @ qkv).view(BATCH, 3, HEADS, 1, -1).unbind(1)
            keys[:, :, place:place + 1], values[:, :, place:place + 1] = k, v
            seen = torch.nn.functional.scaled_dot_product_attention(q, keys[:, :, :place + 1], values[:, :, :place + 1])
            x = x + seen.reshape(BATCH, WIDTH) @ out
            x = x + torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (WIDTH,)) @ up) @ down
        return (x @ self.words.T).argmax(1)

    @torch.no_grad()
    def request(self):
        word = torch.zeros(BATCH, dtype=torch.long, device="cuda")
        for place in range(PROMPT, PROMPT + TOKENS):
            word = self.token(word, place)
            word.tolist()  # as it is sent to whoever asked


if __name__ == "__main__":
    server.main(Decoder(), 10)
