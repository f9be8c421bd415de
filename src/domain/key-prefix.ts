const KEY_PREFIX = /^(sk|slk|pk|rk|gsk|xai|pplx|hf|r8)[-_]|^(AIza|AKIA)/i;

/** Whether a text begins as providers' API keys do (and ours): one pasted in the wrong place is neither kept nor told back. */
export const beginsLikeKey = (text: string): boolean => KEY_PREFIX.test(text);
