#!/usr/bin/env bash
# Captions of three models lie in files: which model is better, and is that certain?
# Writes into the folder that it is started in. No key, no network, no GPU.
set -euo pipefail

# --8<-- [start:settings]
cp "$(dirname "$0")"/files/* .       # alpha.jsonl, beta.csv, gamma.json
export LMMS_CAPTIONS_DATA=sample     # the built-in sample; without this line, the benchmark itself
export LMMS_CAPTIONS_JUDGE=lexical   # a stand-in without a key; here stands your judge's name
# --8<-- [end:settings]

# --8<-- [start:look]
estimate() {
    lmms-eval-captions estimate --tasks vdc_detailed --judge gpt-4o-2024-08-06 --model_args "$1"
}
estimate "path=alpha.jsonl"
# --8<-- [end:look]

# --8<-- [start:wrong]
estimate "path=beta.csv" > /dev/null || echo "exit code $?"
estimate "path=gamma.json" > /dev/null || echo "exit code $?"
# --8<-- [end:wrong]

# --8<-- [start:alpha]
lmms-eval-captions run --model caption_file --model_args "path=alpha.jsonl" \
    --tasks vdc_detailed --log_samples --output_path results/alpha > alpha.log 2>&1
sed -n '/^lmms-eval-captions .*: captions of/,/^judging:/p' alpha.log
tail -n 1 alpha.log
# --8<-- [end:alpha]

# --8<-- [start:beta]
lmms-eval-captions run --model caption_file --model_args "path=beta.csv,column=text" \
    --tasks vdc_detailed --log_samples --output_path results/beta > beta.log 2>&1
sed -n '/^lmms-eval-captions .*: captions of/,/^judging:/p' beta.log
# --8<-- [end:beta]

# --8<-- [start:gamma]
lmms-eval-captions run --model caption_file --model_args "path=gamma.json,missing=drop" \
    --tasks vdc_detailed --log_samples --output_path results/gamma > gamma.log 2>&1
sed -n '/^lmms-eval-captions .*: captions of/,/^judging:/p' gamma.log
# --8<-- [end:gamma]

# --8<-- [start:compare]
lmms-eval-captions compare results/alpha results/beta results/gamma
# --8<-- [end:compare]

# --8<-- [start:gate]
lmms-eval-captions compare results/alpha results/gamma --gate 'vdc_acc>=-0.5' > gate.txt || echo "exit code $?"
tail -n 1 gate.txt
# --8<-- [end:gate]

# --8<-- [start:paper]
lmms-eval-captions compare results/* --paper --force --format latex
# --8<-- [end:paper]

# --8<-- [start:check]
for model in alpha beta gamma; do lmms-eval-captions check "results/$model"; done
# --8<-- [end:check]
