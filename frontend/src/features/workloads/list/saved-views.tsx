/** The views that the reader saved under a name, in the account: filters, groups, order and columns at once. */
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { savedViewsQuery, useDeleteView, useSaveView } from "@/api/account/saved-views";
import {
  parseWorkloadFilters,
  parseWorkloadView,
  type WorkloadFilters,
  type WorkloadSearch,
  type WorkloadView,
} from "@/lib/url/workload-filters";
import { SavedUnderNames } from "../saved-under-names";

export interface SavedViewsProps {
  present: WorkloadSearch;
  onOpen: (filters: WorkloadFilters, view: WorkloadView) => void;
}

export function SavedViews({ present, onOpen }: SavedViewsProps) {
  const [opened, setOpened] = useState(false);
  return (
    <SavedUnderNames
      label={t`Views`}
      icon="filter"
      empty={t`No saved views yet. Save the current one under a name.`}
      nameLabel={t`Name of the view`}
      deleteLabel={(name) => t`Delete the view ${name}`}
      opened={opened}
      onOpened={setOpened}
      query={useQuery({ ...savedViewsQuery(), enabled: opened })}
      saving={useSaveView()}
      deleting={useDeleteView()}
      present={(name, before) => ({ name, search: { ...present }, before })}
      onOpen={(view) => onOpen(parseWorkloadFilters(view.search), parseWorkloadView(view.search))}
    />
  );
}
