/** What the clusters to look at are made of: their cohorts, tenants and kinds of card. */
export const COHORTS = [
  { name: "company", parent: "" },
  { name: "research", parent: "company" },
  { name: "production", parent: "company" },
];
export const NAMESPACES = [
  "vision",
  "language",
  "speech",
  "recommender",
  "robotics",
  "chem-sim",
  "platform",
  "students",
];
export const TYPES = [
  { flavor: "v100-32gb", type: "NVIDIA-Tesla V100-SXM2-32GB", memory: 32_768 },
  { flavor: "a100-80gb", type: "NVIDIA-A100-SXM4-80GB", memory: 81_920 },
];
