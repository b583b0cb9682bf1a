/** A button that submits the job of a workload once more: the form opens with its manifest. */
import { t } from "@lingui/core/macro";
import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Workload } from "@/api/types";
import { Icon } from "@/components/icon";

/** Loaded with the first click: it has all templates. */
const SubmitAgainForm = lazy(async () => ({
  default: (await import("./submit-again-form")).SubmitAgainForm,
}));

export function SubmitAgain({ workload }: { workload: Workload }) {
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button
        size="xs"
        variant="default"
        leftSection={<Icon name="plus" size={14} />}
        onClick={() => setOpened(true)}
      >
        {t`Submit again`}
      </Button>
      {opened && (
        <Suspense>
          <SubmitAgainForm workload={workload} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </>
  );
}
