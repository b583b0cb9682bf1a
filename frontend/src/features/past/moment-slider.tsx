/** A slider over the kept checkpoints: it moves from one to the next, and the pages follow once it is released. */
import { t } from "@lingui/core/macro";
import { Box, Slider, Text } from "@mantine/core";
import { useState } from "react";
import { formatMinute } from "@/lib/time";
import { placeOf, useChooseMoment } from "./choose-moment";

export function MomentSlider({
  checkpoints,
  at,
}: {
  checkpoints: readonly number[];
  at: string | undefined;
}) {
  const choose = useChooseMoment();
  const last = checkpoints.length - 1;
  const place = at === undefined ? last : placeOf(checkpoints, Date.parse(at));
  const [moved, setMoved] = useState<number | null>(null);
  const words = (index: number) => {
    const taken = checkpoints[index];
    return taken === undefined ? "" : formatMinute(new Date(taken).toISOString());
  };
  if (last < 1) return null;
  return (
    <Box px="sm">
      <Text size="xs" c="dimmed" ta="center" aria-hidden>
        {words(moved ?? Math.max(place, 0))}
      </Text>
      <Slider
        size="sm"
        min={0}
        max={last}
        value={moved ?? Math.max(place, 0)}
        label={null}
        thumbLabel={t`Checkpoint`}
        thumbProps={{ "aria-valuetext": words(moved ?? Math.max(place, 0)) }}
        onChange={setMoved}
        onChangeEnd={(index) => {
          setMoved(null);
          const taken = checkpoints[index];
          if (taken !== undefined) choose(taken);
        }}
      />
    </Box>
  );
}
