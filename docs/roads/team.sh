#!/usr/bin/env bash
# Caption scores in a suite of many tasks: the price before, a limit, and a gate in CI.
# Writes into the folder that it is started in. No key, no network, no GPU.
set -euo pipefail

# --8<-- [start:settings]
export LMMS_CAPTIONS_DATA=sample     # the built-in sample; without this line, the benchmarks themselves
files=$(cd "$(dirname "$0")" && pwd)/files
# --8<-- [end:settings]

# --8<-- [start:price]
lmms-eval-captions estimate --tasks video_captions --judge gpt-4o-2024-08-06 2> estimate.log
# --8<-- [end:price]

# --8<-- [start:suite]
mkdir -p suite
cat > suite/first_words.yaml <<'YAML'
task: first_words
dataset_path: json
dataset_kwargs: {data_files: {test: suite/first_words.json}}
test_split: test
output_type: generate_until
doc_to_text: Describe the video.
doc_to_target: "{{gold}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
YAML
echo '{"video": "sample_01", "gold": "A red circle."}' > suite/first_words.json
# --8<-- [end:suite]

# --8<-- [start:run]
export LMMS_CAPTIONS_JUDGE=lexical   # in CI a stand-in says that the suite works; at night the judge judges
lmms-eval-captions run --model caption_file --model_args "path=$files/alpha.jsonl" \
    --tasks first_words,vdc_detailed,vcapsbench,capquiz --include_path suite \
    --output_path results > run.log 2>&1
lmms-eval-captions check results
# --8<-- [end:run]

# --8<-- [start:gate]
python - results/*/*_judging.json <<'PYTHON'
import json, sys
FLOORS = {("vdc_detailed", "vdc_acc"): 60.0, ("capquiz", "capf1"): 99.0}
tasks = json.load(open(sys.argv[-1]))["tasks"]
low = []
for (task, metric), floor in FLOORS.items():
    value = tasks[task]["metrics"][metric]["value"]
    print(f"{task} {metric}: {value:.2f}, at least {floor:.2f} is wanted")
    low += [task] if value < floor else []
sys.exit(f"below its floor: {', '.join(low)}" if low else 0)
PYTHON
# --8<-- [end:gate]
