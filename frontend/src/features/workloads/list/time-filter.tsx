/** Workloads of a range of time, by when they were submitted, admitted or finished. */
import { t } from "@lingui/core/macro";
import { NativeSelect } from "@mantine/core";
import { useState } from "react";
import { TimePicker } from "@/components/time/time-picker";
import { isEmpty, TIME_STEPS, type TimeStep, type WorkloadTimeRange } from "@/lib/url/time-range";

const stepWords = (): Record<TimeStep, string> => ({
  submitted: t`Submitted`,
  admitted: t`Admitted`,
  finished: t`Finished`,
});

export interface TimeFilterProps {
  /** Empty while nothing is narrowed. */
  range: WorkloadTimeRange;
  onChange: (range: WorkloadTimeRange) => void;
}

export function TimeFilter({ range: { time = "submitted", ...range }, onChange }: TimeFilterProps) {
  const [step, setStep] = useState<TimeStep>(time);
  return (
    <TimePicker
      range={range}
      prefix={stepWords()[time]}
      onChange={(chosen) =>
        onChange(isEmpty(chosen) || step === "submitted" ? chosen : { ...chosen, time: step })
      }
    >
      <NativeSelect
        label={t`Time to filter by`}
        size="xs"
        value={step}
        data={TIME_STEPS.map((value) => ({ value, label: stepWords()[value] }))}
        onChange={(event) =>
          setStep(TIME_STEPS.find((each) => each === event.currentTarget.value) ?? "submitted")
        }
      />
    </TimePicker>
  );
}
