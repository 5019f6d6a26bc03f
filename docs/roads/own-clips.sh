#!/usr/bin/env bash
# Many own clips, with captions and questions of one's own: price, limit, going on, several processes.
# Writes into the folder that it is started in. No key, no network, no GPU.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# --8<-- [start:data]
mkdir -p data/vcapsbench
python - <<'PYTHON'
import json
from pathlib import Path
COLOURS = ("red", "blue", "green", "black", "white", "yellow")
THINGS = ("circle", "square", "dog", "car")
rows, captions = [], []
for number in range(16):
    video, colour, thing = f"clip_{number:06}.mp4", COLOURS[number // 4], THINGS[number % 4]
    wrong = COLOURS[number // 4 + 1]
    qa = [f"entity*Is there a {thing}?*yes", f"color*Is the {thing} {colour}?*yes",
          f"color*Is the {thing} {wrong}?*no", f"action*Does the {thing} move?*no"]
    rows.append({"video_id": video, "qa": qa})
    shown = "Something" if number % 5 == 4 else f"A {colour} {thing}"
    captions.append({"video_id": video, "caption": f"{shown} is shown."})
for path, lines in (("data/vcapsbench/VCapsBench_100KQA.jsonl", rows), ("captions.jsonl", captions)):
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
PYTHON
export LMMS_CAPTIONS_DATA=$PWD/data
# --8<-- [end:data]

# --8<-- [start:judge]
python "$here/small_judge.py" url.txt &
until [ -s url.txt ]; do sleep 0.1; done
LMMS_CAPTIONS_JUDGE_URL=$(cat url.txt)
export LMMS_CAPTIONS_JUDGE_URL LMMS_CAPTIONS_JUDGE=small-judge LMMS_CAPTIONS_VCAPSBENCH_ASKS=1
echo 'models: {small-judge: {input: 10, output: 30}}' > prices.yaml
export LMMS_CAPTIONS_PRICES=$PWD/prices.yaml
# --8<-- [end:judge]

# --8<-- [start:price]
lmms-eval-captions estimate --tasks vcapsbench --captions captions.jsonl
# --8<-- [end:price]

# --8<-- [start:limit]
judge() {
    lmms-eval-captions run --model caption_file --model_args path=captions.jsonl \
        --tasks vcapsbench "$@"
}
LMMS_CAPTIONS_MAX_COST=0.10 judge --output_path results > limit.log 2>&1 || echo "exit code $?"
tail -n 1 limit.log
# --8<-- [end:limit]

# --8<-- [start:side]
judge --output_path first --limit 8 > first.log 2>&1 &
first=$!
judge --output_path second --offset 8 --limit 8 > second.log 2>&1
wait $first
# --8<-- [end:side]

# --8<-- [start:whole]
judge --output_path results > whole.log 2>&1
sed -n '/^lmms-eval-captions .*: captions of/,/unscored: /p' whole.log
grep -o '^judging: .* from the store' whole.log
# --8<-- [end:whole]
