#!/usr/bin/env bash
# A model of your own, as a class: see what it writes, score it, see what it got wrong.
# Writes into the folder that it is started in. No key, no network, no GPU.
set -euo pipefail

# --8<-- [start:settings]
export LMMS_CAPTIONS_DATA=sample     # the built-in sample; without this line, the benchmark itself
export LMMS_CAPTIONS_JUDGE=lexical   # a stand-in without a key; here stands your judge's name
mine="class=$(cd "$(dirname "$0")" && pwd)/my_captioner.py:MyCaptioner"
# --8<-- [end:settings]

# --8<-- [start:look]
lmms-eval-captions run --model caption_custom --model_args "$mine" --tasks vdc_background \
    --limit 3 --predict_only --log_samples --output_path look > look.log 2>&1
python - look/*_samples_vdc_background.jsonl <<'PYTHON'
import json, sys
for line in open(sys.argv[1]):
    sample = json.loads(line)
    print(f"{sample['target']}: {sample['filtered_resps']}")
PYTHON
# --8<-- [end:look]

# --8<-- [start:score]
lmms-eval-captions run --model caption_custom --model_args "$mine" --tasks vdc_background \
    --batch_size 4 --log_samples --output_path results > run.log 2>&1
lmms-eval-captions check results
# --8<-- [end:score]

# --8<-- [start:wrong]
python - results/*_samples_vdc_background.jsonl <<'PYTHON'
import json, sys
from collections import Counter
wrong, asked = Counter(), Counter()
for line in open(sys.argv[1]):
    sample = json.loads(line)
    for judgement in sample["vdc_acc"]["judgements"]:
        question = judgement["question"]
        asked[question] += 1
        wrong[question] += judgement["verdict"] != "yes"
for question, n in wrong.most_common(4):
    print(f"{n} of {asked[question]} wrong: {question}")
PYTHON
# --8<-- [end:wrong]
