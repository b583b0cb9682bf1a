/** Short texts side by side, as chips; a dash where there is none. */
import { Badge, Group } from "@mantine/core";

export function Facts({ texts }: { texts: readonly string[] }) {
  if (texts.length === 0) return "–";
  return (
    <Group gap={4}>
      {texts.map((text) => (
        <Badge key={text} variant="default" tt="none" radius="sm" fw={450} maw="100%" title={text}>
          {text}
        </Badge>
      ))}
    </Group>
  );
}
