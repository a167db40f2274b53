import java.util.Map;
import java.util.function.BiFunction;
import java.util.regex.Pattern;

import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.email.UAX29URLEmailTokenizer;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.apache.lucene.analysis.pattern.PatternCaptureGroupTokenFilter;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;

/** What the index of API keys takes of Elasticsearch's own analysis module, which core builds lack. */
public class SecurityAnalysis extends Plugin implements AnalysisPlugin {
    @Override
    public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        return Map.of(
            "pattern_capture", filter((stream, settings) -> new PatternCaptureGroupTokenFilter(stream, true,
                settings.getAsList("patterns").stream().map(Pattern::compile).toArray(Pattern[]::new))),
            "unique", filter((stream, settings) -> new RemoveDuplicatesTokenFilter(stream)));
    }

    @Override
    public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
        return Map.of("uax_url_email", (index, environment, name, settings) ->
            TokenizerFactory.newFactory(name, UAX29URLEmailTokenizer::new));
    }

    private static AnalysisProvider<TokenFilterFactory> filter(
        BiFunction<TokenStream, Settings, TokenStream> make
    ) {
        return (index, environment, name, settings) -> new TokenFilterFactory() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public TokenStream create(TokenStream stream) {
                return make.apply(stream, settings);
            }
        };
    }
}
