#!/usr/bin/env bash
# First steps: clips become captions, captions become scores; then what mistakes look like.
# Writes into the folder that it is started in. No key, no network, no GPU.
set -uo pipefail

# --8<-- [start:settings]
export LMMS_CAPTIONS_DATA=sample     # twelve clips that are drawn by code
export LMMS_CAPTIONS_JUDGE=lexical   # compares words: it shows that everything works, and is no judge
# --8<-- [end:settings]

# --8<-- [start:demo]
lmms-eval-captions run --model caption_baseline --tasks vdc_short,vcapsbench --limit 4 \
    --log_samples --output_path results > run.log 2>&1
echo "exit code $?"
sed -n '/^lmms-eval-captions .*: captions of/,/^judging:/p' run.log
# --8<-- [end:demo]

# --8<-- [start:misspelt]
LMMS_CAPTIONS_MAX_COSTS=5 lmms-eval-captions doctor > settings.txt
echo "exit code $?"
# --8<-- [end:misspelt]

# --8<-- [start:nobody]
LMMS_CAPTIONS_JUDGE=my-judge LMMS_CAPTIONS_JUDGE_URL=http://127.0.0.1:9/v1 lmms-eval-captions doctor \
    > doctor.txt 2> /dev/null
echo "exit code $?"
grep '^problem' doctor.txt
# --8<-- [end:nobody]

# --8<-- [start:task]
lmms-eval-captions estimate --tasks vdc_scores
echo "exit code $?"
# --8<-- [end:task]

# --8<-- [start:file]
lmms-eval-captions estimate --tasks vdc_short --captions captoins.jsonl
echo "exit code $?"
# --8<-- [end:file]

# --8<-- [start:failed]
lmms-eval-captions run --model caption_file --model_args path=captoins.jsonl --tasks vdc_short \
    --output_path failed > failed.log 2>&1
echo "exit code $?"
tail -n 1 failed.log
# --8<-- [end:failed]
