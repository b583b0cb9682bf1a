/** Tests read the pages in English, the language of the source. */
import { i18n } from "@lingui/core";

i18n.loadAndActivate({ locale: "en", messages: {} });
