/** The templates that the reader saved under a name, in the account. */
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { manifestTemplatesQuery, useDeleteTemplate, useSaveTemplate } from "@/api/account/manifest-templates";
import { SavedUnderNames } from "../saved-under-names";

interface OwnTemplatesProps {
  /** The text that is saved under a new name. */
  manifest: string;
  onOpen: (name: string, manifest: string) => void;
}

export function OwnTemplates({ manifest, onOpen }: OwnTemplatesProps) {
  const [opened, setOpened] = useState(false);
  return (
    <SavedUnderNames
      label={t`My templates`}
      icon="bookmark"
      empty={t`No templates yet. Save the manifest under a name.`}
      nameLabel={t`Name of the template`}
      deleteLabel={(name) => t`Delete the template ${name}`}
      opened={opened}
      onOpened={setOpened}
      query={useQuery({ ...manifestTemplatesQuery(), enabled: opened })}
      saving={useSaveTemplate()}
      deleting={useDeleteTemplate()}
      present={(name, before) => ({ name, manifest, before })}
      onOpen={(template) => onOpen(template.name, template.manifest)}
    />
  );
}
