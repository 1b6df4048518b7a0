#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""graph_tokens.py: a language model that decodes 64 tokens a request for a batch of 8, each token a CUDA graph, as server.py serves."""

import torch
from torch.nn import functional

import server

LAYERS, WIDTH, HEADS, BATCH, WORDS, PROMPT, TOKENS = 16, 2048, 16, 8, 8192, 128, 64


class Decoder:
    def __init__(self):
        torch.manual_seed(1)

        def weights(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02

        self.words = weights(WORDS, WIDTH)
        self.layers = [(weights(WIDTH, 3 * WIDTH), weights(WIDTH, WIDTH), weights(WIDTH, 4 * WIDTH), weights(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
        size = (BATCH, HEADS, PROMPT + TOKENS, WIDTH // HEADS)
        self.past = [(weights(*size), weights(*size)) for _ in range(LAYERS)]
        self.word = torch.zeros(BATCH, dtype=torch.long, device="cuda")
        self.place = torch.full((1,), PROMPT, device="cuda")
        self.places = torch.arange(PROMPT + TOKENS, device="cuda")
        self.graph = self.captured()

    def token(self):
        """The next one after self.word, at self.place, which goes on."""
        x, seen = self.words[self.word], (self.places <= self.place).view(1, 1, 1, -1)
        for (qkv, out, up, down), (keys, values) in zip(self.layers, self.past):
            q, k, v = (functional.layer_norm(x, (WIDTH,)) @ qkv).view(BATCH, 3, HEADS, 1, -1).unbind(1)
            keys.index_copy_(2, self.place, k)
            values.index_copy_(2, self.place, v)
            attended = functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
            x = x + attended.reshape(BATCH, WIDTH) @ out
            x = x + functional.gelu(functional.layer_norm(x, (WIDTH,)) @ up) @ down
        self.word.copy_((x @ self.words.T).argmax(1))
        self.place.add_(1)

    @torch.no_grad()
    def captured(self):
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            for _ in range(3):
                self.token()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            self.token()
        return graph

    def request(self):
        self.word.zero_()
        self.place.fill_(PROMPT)
        for _ in range(TOKENS):
            self.graph.replay()
            self.word.tolist()  # as it is sent to whoever asked


if __name__ == "__main__":
    server.main(Decoder(), 10)
