const MOST_WORDS = 4000;
/* Words with the space that follows them, so that joined they are the text again. */
function wordsOf(text) { return text.match(/^\s+|\S+\s*/g) || []; }
/* Which words of two texts both have in the same order; null where they are too long to be compared. */
function wordDifferences(before, after) {
  const [left, right] = [wordsOf(before), wordsOf(after)];
  if (left.length > MOST_WORDS || right.length > MOST_WORDS) return null;
  const numbers = new Map();
  const numbered = (words) => Int32Array.from(words, (word) => {
    // A full stop or a comma makes no other word of it.
    const plain = word.trim().toLowerCase();
    const key = plain.replace(/^\p{P}+|\p{P}+$/gu, "") || plain;
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key);
  });
  const [a, b] = [numbered(left), numbered(right)];
  const kept = { before: new Uint8Array(a.length), after: new Uint8Array(b.length) };
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) { kept.before[start] = kept.after[start] = 1; start += 1; }
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA -= 1; endB -= 1; kept.before[endA] = kept.after[endB] = 1; }
  markCommon(a.subarray(start, endA), b.subarray(start, endB), (i, j) => { kept.before[start + i] = kept.after[start + j] = 1; });
  return kept;
}
/* The longest common subsequence, by its lengths from each place on. */
function markCommon(a, b, mark) {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const [here, below] = [i * width, (i + 1) * width];
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[here + j] = a[i] === b[j] ? longest[below + j + 1] + 1 : Math.max(longest[below + j], longest[here + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) { mark(i, j); i += 1; j += 1; }
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
}
