/** The manifest of a job as the start of the next one: the same pods under a name of its own. */
import {
  authored,
  type Fields,
  isFields,
  type Manifest,
  read,
  type Value,
  write,
} from "@/lib/manifest/object";
import { toYaml } from "@/lib/manifest/yaml";

/** The ending that Kubernetes gives a generated name: it uses no vowels, and no digits that look like letters. */
const GENERATED_ENDING = /-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
/** A generated name has at most 63 characters, with an ending of five. */
const MAX_BEGINNING = 57;
/** Labels that the Job controller writes into the template of each Job. */
const LABELS_OF_ONE_JOB = [
  "batch.kubernetes.io/controller-uid",
  "batch.kubernetes.io/job-name",
  "controller-uid",
  "job-name",
];

/** The beginning of the next job's generated name. */
export function beginningOf(name: string): string {
  return `${name.replace(GENERATED_ENDING, "").slice(0, MAX_BEGINNING)}-`;
}

/** The text of a manifest that submits the same job once more. */
export function againText(job: Manifest): string {
  const { apiVersion, kind, metadata, ...rest } = authored(job);
  const { name, namespace, labels, annotations } = metadata;
  const fresh: Fields = {
    generateName: beginningOf(String(name ?? "job")),
    ...(namespace === undefined ? {} : { namespace }),
    ...(isFilled(labels) ? { labels } : {}),
    ...(isFilled(annotations) ? { annotations } : {}),
  };
  const spec = isFields(rest.spec) ? { spec: withoutTraces(rest.spec, kind === "Job") } : {};
  return toYaml({ apiVersion, kind, metadata: fresh, ...rest, ...spec });
}

const isFilled = (value: Value | undefined): value is Fields =>
  isFields(value) && Object.keys(value).length > 0;

/** A spec without what belongs to the one job that was made from it. */
function withoutTraces(spec: Fields, isJob: boolean): Fields {
  const { selector: _, ...rest } = spec;
  // The API server makes the selector of a Job, unless its author asks for one of their own.
  const kept = isJob && spec.manualSelector !== true ? rest : spec;
  const suspended = "suspend" in spec ? { ...kept, suspend: true } : kept;
  return LABELS_OF_ONE_JOB.reduce(
    (found, label) =>
      read(found, ["template", "metadata", "labels", label]) === undefined
        ? found
        : write(found, ["template", "metadata", "labels", label], undefined),
    suspended,
  );
}
