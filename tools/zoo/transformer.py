"""Tiny transformers of Hugging Face's library, by their configurations."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

from tools.zoo.live import Draw, floats, tokens

_WIDTH, _LAYERS, _HEADS, _INNER, _WORDS, _LENGTH = 32, 2, 2, 64, 100, 16


class First(nn.Module):
    """The network's first output, a plain tensor: a model file has no outputs by name."""

    def __init__(self, network: nn.Module, **options: Any) -> None:
        super().__init__()
        self.network, self.options = network, options

    def forward(self, value: torch.Tensor) -> Any:
        return self.network(value, return_dict=False, **self.options)[0]


def bert() -> tuple[nn.Module, Draw]:
    config = transformers.BertConfig(
        vocab_size=_WORDS,
        hidden_size=_WIDTH,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        intermediate_size=_INNER,
        max_position_embeddings=_LENGTH,
    )
    return First(transformers.BertModel(config, add_pooling_layer=False)), tokens(
        _WORDS, 1, _LENGTH
    )


def distilbert() -> tuple[nn.Module, Draw]:
    config = transformers.DistilBertConfig(
        vocab_size=_WORDS,
        dim=_WIDTH,
        n_layers=_LAYERS,
        n_heads=_HEADS,
        hidden_dim=_INNER,
        max_position_embeddings=_LENGTH,
    )
    return First(transformers.DistilBertModel(config)), tokens(_WORDS, 1, _LENGTH)


def vit() -> tuple[nn.Module, Draw]:
    config = transformers.ViTConfig(
        hidden_size=_WIDTH,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        intermediate_size=_INNER,
        image_size=32,
        patch_size=8,
    )
    network = transformers.ViTModel(config, add_pooling_layer=False)
    return First(network), floats((1, 3, 32, 32))


def llama() -> tuple[nn.Module, Draw]:
    config = transformers.LlamaConfig(
        vocab_size=_WORDS,
        hidden_size=_WIDTH,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        num_key_value_heads=1,
        intermediate_size=_INNER,
        max_position_embeddings=_LENGTH,
    )
    return First(transformers.LlamaForCausalLM(config), use_cache=False), tokens(_WORDS, 1, _LENGTH)


def whisper_encoder() -> tuple[nn.Module, Draw]:
    config = transformers.WhisperConfig(
        num_mel_bins=16,
        d_model=_WIDTH,
        encoder_layers=_LAYERS,
        encoder_attention_heads=_HEADS,
        encoder_ffn_dim=_INNER,
        decoder_layers=1,
        decoder_attention_heads=_HEADS,
        max_source_positions=_LENGTH,
    )
    encoder = transformers.WhisperModel(config).encoder
    return First(encoder), floats((1, 16, 2 * _LENGTH))


def wav2vec2_encoder() -> tuple[nn.Module, Draw]:
    config = transformers.Wav2Vec2Config(
        hidden_size=_WIDTH,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        intermediate_size=_INNER,
        conv_dim=(16, 16, 16),
        conv_stride=(5, 2, 2),
        conv_kernel=(10, 3, 3),
        num_feat_extract_layers=3,
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=4,
    )
    return First(transformers.Wav2Vec2Model(config)), floats((1, 400))
