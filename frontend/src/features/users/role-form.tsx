/** Gives a user or a group a role in a cluster. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useTarget } from "@/api/cluster";
import { useBindRole } from "@/api/users";
import { ClusterChoice } from "@/components/clusters/cluster-choice";
import { ErrorState } from "@/components/error-state";
import { Panel } from "@/components/panel";
import { faultLines } from "@/lib/words/refusal";
import { type RoleName, roles } from "./words";

export function RoleForm() {
  const target = useTarget();
  const { cluster } = target;
  const binding = useBindRole(cluster);
  const [subject, setSubject] = useState<"user" | "group">("user");
  const [name, setName] = useState("");
  const [role, setRole] = useState<RoleName>("submitter");
  const [place, setPlace] = useState("");
  const ofTree = role === "queue-admin";
  const bind = () =>
    binding.mutate(
      {
        [subject]: name.trim(),
        role,
        ...(place === "" ? {} : { [ofTree ? "cohort" : "in_namespace"]: place.trim() }),
      },
      { onSuccess: () => setName("") },
    );
  return (
    <Panel title={t`Bind a role`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          bind();
        }}
      >
        <Stack gap="sm">
          <SegmentedControl
            aria-label={t`Subject`}
            data={[
              { value: "user", label: t`A user` },
              { value: "group", label: t`A group` },
            ]}
            value={subject}
            onChange={(value) => setSubject(value === "group" ? "group" : "user")}
          />
          <TextInput
            label={subject === "user" ? t`User name` : t`Group`}
            required
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Select
            label={t`Role`}
            data={roles()}
            value={role}
            allowDeselect={false}
            onChange={(value) => value !== null && setRole(value as RoleName)}
          />
          <TextInput
            label={ofTree ? t`Below the cohort` : t`In the namespace`}
            placeholder={ofTree ? "" : t`all namespaces`}
            required={ofTree}
            value={place}
            onChange={(event) => setPlace(event.currentTarget.value)}
          />
          <ClusterChoice {...target} />
          {binding.error !== null && (
            <ErrorState
              title={t`The role was not bound`}
              message={binding.error.message}
              details={faultLines(binding.error instanceof ApiError ? binding.error.errors : [])}
            />
          )}
          <Text size="xs" c="var(--kw-muted)">
            <Trans>
              It applies to the cluster {cluster} immediately. The user or group need not exist yet.
            </Trans>
          </Text>
          <Button type="submit" loading={binding.isPending}>
            {t`Bind`}
          </Button>
        </Stack>
      </form>
    </Panel>
  );
}
