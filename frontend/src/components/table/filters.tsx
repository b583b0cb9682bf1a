/** The row of filters above a list. What is chosen stands in the URL; the page says what it means. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback, useDisclosure, useMediaQuery } from "@mantine/hooks";
import { Children, type ReactNode, useEffect, useState } from "react";
import { Icon } from "@/components/icon";
import classes from "./filters.module.css";

export interface FilterRowProps {
  children: ReactNode;
  /** At the right. */
  aside?: ReactNode;
  /** Absent while nothing is filtered. */
  onClear?: (() => void) | undefined;
}

/** On a phone only the first filter is on screen; a button shows the others. */
export function FilterRow({ children, aside, onClear }: FilterRowProps) {
  const narrow = useMediaQuery("(max-width: 560px)");
  const [opened, { toggle }] = useDisclosure(false);
  const [first, ...others] = Children.toArray(children);
  const folded = narrow && !opened;
  return (
    <Group gap="xs" mb={{ base: 2, xs: "sm" }}>
      {first}
      {narrow && (others.length > 0 || aside !== undefined) && (
        <Button
          variant="default"
          size="xs"
          leftSection={<Icon name="filter" size={13} />}
          aria-expanded={opened}
          onClick={toggle}
        >
          <Trans>Filters</Trans>
        </Button>
      )}
      {!folded && others}
      {onClear !== undefined && (
        <Button variant="subtle" size="xs" leftSection={<Icon name="close" size={13} />} onClick={onClear}>
          <Trans>Clear</Trans>
        </Button>
      )}
      {aside !== undefined && !folded && (
        <Group gap={4} ml="auto">
          {aside}
        </Group>
      )}
    </Group>
  );
}

const TYPING_MS = 300;

export interface TextFilterProps {
  label: string;
  placeholder?: string;
  value: string | undefined;
  onChange: (text: string) => void;
  /** The one that the key / leads to. */
  search?: boolean;
}

/** Typed text, handed over when the typing pauses: each change would be a request. */
export function TextFilter({
  label,
  placeholder = label,
  value = "",
  onChange,
  search = false,
}: TextFilterProps) {
  const [text, setText] = useState(value);
  const later = useDebouncedCallback(onChange, TYPING_MS);
  useEffect(() => setText(value), [value]);
  return (
    <TextInput
      type={search ? "search" : "text"}
      aria-label={label}
      placeholder={search ? `${placeholder}  ( / )` : placeholder}
      size="xs"
      className={search ? classes.search : classes.choice}
      leftSection={search ? <Icon name="search" size={14} /> : undefined}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        later(event.currentTarget.value);
      }}
    />
  );
}

export interface ChoiceFilterProps {
  label: string;
  choices: readonly (string | { value: string; label: string })[] | undefined;
  value: string | undefined;
  onChange: (value: string | null) => void;
}

export function ChoiceFilter({ label, choices = [], value, onChange }: ChoiceFilterProps) {
  // A value from the URL stays selectable even where the list does not hold it.
  const known = choices.some((choice) => (typeof choice === "string" ? choice : choice.value) === value);
  return (
    <Select
      aria-label={label}
      placeholder={label}
      size="xs"
      className={classes.choice}
      searchable
      clearable
      limit={100}
      data={value === undefined || known ? [...choices] : [value, ...choices]}
      value={value ?? null}
      onChange={onChange}
      nothingFoundMessage={t`No match`}
    />
  );
}

/** Objects by their Kubernetes label. */
export function LabelFilter({ value, onChange }: Pick<TextFilterProps, "value" | "onChange">) {
  return <TextFilter label={t`Label`} placeholder={t`key or key=value`} value={value} onChange={onChange} />;
}
