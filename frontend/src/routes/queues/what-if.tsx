import { getRouteApi } from "@tanstack/react-router";
import { WhatIfPage } from "@/features/studio/what-if-page";

const route = getRouteApi("/app/what-if");

export function WhatIfRoute() {
  const { question } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <WhatIfPage
      opened={question}
      onOpen={(opened) => void navigate({ search: opened === undefined ? {} : { question: opened } })}
    />
  );
}
